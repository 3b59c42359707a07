"""What a broker does towards its name servers: it announces itself and its topics, and stays announced.

`config` and `topics` say what is announced, `messages` how that is put into requests, `rounds` how a request goes
to all name servers, `agent` when."""
