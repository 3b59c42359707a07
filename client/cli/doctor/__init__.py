"""`mqns doctor`: what differs between name servers, and what in a set-up would hurt.

`collect` asks and gives `facts`; the checks are functions from facts to findings and ask nobody."""
