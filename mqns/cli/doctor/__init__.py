"""`mqns doctor`: differences between name servers, and harmful settings.

`collect` makes the calls and returns `facts`; the checks are functions from facts to findings, without calls."""
