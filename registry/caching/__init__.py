"""Parts of every cache: a bounded map, and a stamp that says until when a reply is true."""
