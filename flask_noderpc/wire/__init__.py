"""Wire encodings: fields, schemas, dialects."""
