"""Connections: accepted, framed, bounded, encrypted; bytes in, requests out."""
