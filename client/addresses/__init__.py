"""Where name servers are: the syntax of address lists and the places they come from."""
