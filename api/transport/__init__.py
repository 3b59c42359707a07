"""Connections of an HTTP worker: what slow peers may take of it, and for how long."""
