"""Random requests and what must hold for each: shared by the short runs in the tests and by the long ones."""
