"""A page to study the protocol: definitions, versions, and bytes that are decoded when pasted.

`build.page` makes one HTML text of `page.html`, `style.css`, the scripts and the definitions. It
needs no server and no network. The scripts read bytes by the same layouts as `kproto.schema`.
"""
