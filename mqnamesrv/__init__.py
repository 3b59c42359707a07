"""`mqnamesrv`: one command that starts store, remoting workers, HTTP workers and jobs, and ends them."""
