"""What page and Python say to each other, by family, as dataclasses.

`wire` makes JSON of them and reads it; ``web/scripts/protocol_types.py`` writes their TypeScript
(``web/src/python/wire.ts``): the page knows a field ``end_line`` as ``endLine``. Constants in
capitals go there, too.
"""
