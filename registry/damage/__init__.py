"""What no peer can have stored: keys of a wrong type, text that is no UTF-8."""
