"""How ends of leases are noticed: by ticks of workers, who have leases too; and holds of mass expiries."""
