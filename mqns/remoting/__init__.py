"""The remoting client: connections, calls and their time budgets."""
