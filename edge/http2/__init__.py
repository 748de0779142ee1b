"""The server's side of HTTP/2, without sockets or clocks: bytes in, streams and bytes out."""
