"""The routes of a client's topics and the queues that follow from them."""
