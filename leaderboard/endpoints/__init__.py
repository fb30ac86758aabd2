"""Calls to model endpoints that users name: guarded connections, three APIs, sorted errors.

`clients.complete` makes one call, `probing.probe` tests a connection, `keys` keeps an endpoint's
key encrypted. `egress` is the only module of the site that opens outgoing connections.
"""
