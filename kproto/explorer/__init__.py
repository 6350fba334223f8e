"""Builds a page to study the protocol: definitions, versions, and a decoder of pasted bytes.

`build.page` makes one HTML text from `page.html`, `style.css`, the scripts and the definitions. It
needs no server and no network. The scripts read bytes by the same layouts as `kproto.schema`.
"""
