"""For the tests of people who build on anykit: fake peers, and contracts that any source or host must keep."""
