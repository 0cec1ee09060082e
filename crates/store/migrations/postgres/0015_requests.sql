-- Requests that carry a key under which they may be sent again: each is kept once. Old rows are
-- removed when new ones come.

CREATE TABLE request_keys (
    scope TEXT COLLATE "C" NOT NULL,       -- the path that it was sent to
    request_key TEXT COLLATE "C" NOT NULL, -- chosen by the client
    digest TEXT COLLATE "C" NOT NULL,      -- of the body
    made_at TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, request_key)
);

CREATE INDEX request_keys_made ON request_keys (made_at);
