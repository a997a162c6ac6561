"""How values look on the wire: fields, shapes, dialects."""
