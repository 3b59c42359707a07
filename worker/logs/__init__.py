"""Log lines of all processes of the server: their form, and how often a peer can cause one."""
