"""Work over large tables that stops no other: in pages, in time slices, a few at a time."""
