"""Builds an HTML page to study the protocol: definitions, versions, and a decoder of pasted bytes.

`build.page` combines `page.html`, `style.css`, the scripts and the definitions into one HTML text.
The page needs no server and no network. Its scripts decode bytes by the definitions.
"""
