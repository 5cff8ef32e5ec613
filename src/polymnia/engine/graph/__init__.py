"""Entities, facts and relations: read, write, walk and draw them."""
