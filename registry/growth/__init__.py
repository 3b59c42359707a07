"""How far peers can make the tables grow, and how far they have grown."""
