-- Requests that carry a key under which they may be sent again: each is kept once. Old rows are
-- removed when new ones come.

CREATE TABLE request_keys (
    scope TEXT NOT NULL,       -- the path that it was sent to
    request_key TEXT NOT NULL, -- chosen by the client
    digest TEXT NOT NULL,      -- of the body
    made_at TEXT NOT NULL,
    PRIMARY KEY (scope, request_key)
);

CREATE INDEX request_keys_made ON request_keys (made_at);
