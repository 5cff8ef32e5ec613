"""The benchmark: Polymnia beside its peers, over stdio, in one run."""
