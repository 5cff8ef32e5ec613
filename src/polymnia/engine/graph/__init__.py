"""Entities, observations and relations: read, write, walk and draw them."""
