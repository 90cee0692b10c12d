//! The tables of `agent.db`.

use dodona_plugin::store::Migration;

/// The schema, step by step.
///
/// `exchanges` holds the originals: rows are added and never removed, and what was said in one
/// never changes. The `tokens_used` of a context is derived from it in the transaction that changes
/// it; `recent_exchanges_json` and the mentions in a context's row are copies, made in the transaction
/// that ends a query, and whenever one is taken back, copied or counted anew. `summary_lines` stand
/// for the exchanges up to `summarized_to`; `compressed_summary` is their text, and `summary_texts` has
/// every one there was. `requests` has what tells the requests of a query apart, for a replay.
pub const MIGRATIONS: &[Migration] = &[
    CONVERSATIONS,
    RESULTS,
    WINDOWS,
    SESSIONS,
    SUMMARIES,
    REQUESTS,
    CALLS,
    FOUND_TOOLS,
    MEMORIES,
    NAMES,
    RULES,
    UNSENT,
    CORE_NOTIFICATIONS,
    DELEGATED,
    HUB_CALLS,
    STEERING,
    SOURCES,
];

/// Messages that the user sent while a query was running, until the loop adds them to the
/// conversation: after the model's message that was being written, and after the results of its tools.
const STEERING: Migration = Migration::new(
    16,
    "messages to running queries",
    "
    create table steering (
        id       integer primary key,
        query_id text not null references queries(id) on delete cascade,
        exchange text not null
    ) strict;
    create index steering_of_a_query on steering(query_id, id);
    ",
);

/// The hub's id of a tool call, by which recovery finds how the call ended in the journal. Set when
/// the gates of a mutating call have passed.
const HUB_CALLS: Migration = Migration::new(
    15,
    "the calls of the hub that tool calls run as",
    "alter table tool_calls add column hub_call_id text",
);

/// What a model was shown, by the number under which it cites it.
const SOURCES: Migration = Migration::new(
    17,
    "sources of tool results",
    "
    create table sources (
        context_id text not null references oracle_contexts(id) on delete cascade,
        number     integer not null check (number > 0),
        source     text not null,
        primary key (context_id, number)
    ) strict, without rowid;
    ",
);

/// Conversations of other agents were all created by `agent.delegate` before this version.
const DELEGATED: Migration = Migration::new(
    14,
    "mark conversations of delegated tasks",
    "
    alter table oracle_contexts add column is_delegated integer not null default 0
        check (is_delegated in (0, 1));
    update oracle_contexts set is_delegated = 1 where agent_id <> 'oracle';
    ",
);

/// Notifications of core rules are never dropped, and are delivered before others.
const CORE_NOTIFICATIONS: Migration = Migration::new(
    13,
    "notifications of core rules",
    "alter table inbox add column core integer not null default 0 check (core in (0, 1))",
);

/// The result of a query is stored with its answer, until it is known that its stream has it too.
const UNSENT: Migration = Migration::new(
    12,
    "answers whose stream may lack them",
    "
    create table unsent_answers (
        call_id  text primary key,
        response text not null
    ) strict, without rowid;
    create index queries_of_a_call on queries(call_id) where call_id is not null;
    ",
);

const RULES: Migration = Migration::new(
    11,
    "the rule that says what an agent is told",
    "alter table inbox add column rule text",
);

/// What a column may hold is changed by making its table anew.
const NAMES: Migration = Migration::new(
    10,
    "names among the lines of a summary",
    "
    create table summary_lines_anew (
        context_id text not null references oracle_contexts(id) on delete cascade,
        ordinal    integer not null,
        kind       text not null check (kind in ('pinned', 'decision', 'earlier', 'told', 'asked',
                                                 'said', 'did', 'command', 'number', 'name', 'file',
                                                 'symbol')),
        text       text not null,
        exchanges  text not null,
        position   integer not null,
        tokens     integer not null,
        primary key (context_id, ordinal)
    ) strict, without rowid;
    insert into summary_lines_anew select * from summary_lines;
    drop table summary_lines;
    alter table summary_lines_anew rename to summary_lines;
    ",
);

/// The words of an owner stand together, so that a question reads what it needs and nothing else.
const MEMORIES: Migration = Migration::new(
    9,
    "what is found again of all conversations",
    "
    create table memories (
        id         integer primary key,
        context_id text not null references oracle_contexts(id) on delete cascade,
        user_id    text not null,
        project_id text not null,
        topic      text not null,
        kind       text not null check (kind in ('decision', 'fact', 'preference', 'pinned', 'said',
                                                 'asked')),
        place      text not null,
        position   integer not null,
        text       text not null,
        line_start integer not null,
        line_end   integer not null,
        hash       text not null,
        created_at text not null,
        unique (context_id, place)
    ) strict;
    create index memories_of_a_topic on memories(topic);

    create table memory_words (
        user_id    text not null,
        project_id text not null,
        word       text not null,
        memory_id  integer not null references memories(id) on delete cascade,
        primary key (user_id, project_id, word, memory_id)
    ) strict, without rowid;
    create index words_of_a_memory on memory_words(memory_id);

    alter table oracle_contexts add column memorized_to integer not null default 0;
    ",
);

/// `changed` tells a request as plugins left it, and `heard` has an answer as the model gave it; both are
/// there only where plugins changed something.
const FOUND_TOOLS: Migration = Migration::new(
    8,
    "tools that were found among many; what plugins made of requests and answers",
    "
    create table found_tools (
        context_id text not null references oracle_contexts(id) on delete cascade,
        ordinal    integer not null,
        name       text not null,
        query_id   text not null,
        turn       integer not null,
        primary key (context_id, name)
    ) strict, without rowid;
    create index found_tools_of_a_query on found_tools(query_id);

    alter table requests add column tools_told integer not null default 0;
    alter table requests add column tools_known integer not null default 0;
    alter table requests add column tokens_saved integer not null default 0;
    alter table requests add column changed text;
    alter table requests add column heard text;
    ",
);

/// Whoever comes back to a query that is running reads on in the stream of its call.
const CALLS: Migration = Migration::new(
    7,
    "the calls that queries run in",
    "alter table queries add column call_id text;",
);

const REQUESTS: Migration = Migration::new(
    6,
    "requests to models, by what tells them apart",
    "
    create table summary_texts (
        id         integer primary key,
        context_id text not null references oracle_contexts(id) on delete cascade,
        text       text not null
    ) strict;
    create index summary_texts_of_a_context on summary_texts(context_id);
    alter table oracle_contexts add column summary_id integer;
    insert into summary_texts (context_id, text)
        select id, compressed_summary from oracle_contexts where compressed_summary is not null;
    update oracle_contexts set summary_id = (
        select t.id from summary_texts t where t.context_id = oracle_contexts.id);

    create table requests (
        query_id      text not null references queries(id) on delete cascade,
        turn          integer not null,
        at            text not null,
        digest        text not null,
        preloaded     text,
        summary_id    integer,
        window_from   integer not null,
        last_position integer not null,
        primary key (query_id, turn)
    ) strict, without rowid;
    ",
);

const SUMMARIES: Migration = Migration::new(
    5,
    "what stands for exchanges that have left the window",
    "
    alter table oracle_contexts add column summarized_to integer not null default 0;
    alter table oracle_contexts add column summary_tokens integer not null default 0;

    create table summary_lines (
        context_id text not null references oracle_contexts(id) on delete cascade,
        ordinal    integer not null,
        kind       text not null check (kind in ('pinned', 'decision', 'earlier', 'told', 'asked',
                                                 'said', 'did', 'command', 'number', 'file',
                                                 'symbol')),
        text       text not null,
        exchanges  text not null,
        position   integer not null,
        tokens     integer not null,
        primary key (context_id, ordinal)
    ) strict, without rowid;
    ",
);

const SESSIONS: Migration = Migration::new(
    4,
    "sessions, and what an agent is to be told",
    "
    create table sessions (
        id          text primary key,
        context_id  text not null references oracle_contexts(id) on delete cascade,
        user_id     text not null,
        project_id  text not null,
        process     text not null,
        started_at  text not null,
        ended_at    text,
        reason      text check (reason in ('closed', 'idle', 'shutdown', 'crashed')),
        told        integer not null default 0 check (told in (0, 1)),
        check ((ended_at is null) = (reason is null))
    ) strict;
    create unique index one_open_session on sessions(context_id) where ended_at is null;
    create index untold_sessions on sessions(ended_at) where told = 0;

    create table inbox (
        id           integer primary key,
        context_id   text not null references oracle_contexts(id) on delete cascade,
        plugin       text not null,
        message      text not null,
        category     text not null,
        priority     integer not null check (priority between 0 and 3),
        deliver_at   text not null,
        created_at   text not null,
        delivered_at text,
        query_id     text,
        turn         integer
    ) strict;
    create index waiting_notifications on inbox(context_id, priority) where delivered_at is null;
    ",
);

const RESULTS: Migration = Migration::new(
    2,
    "results that were cut",
    "
    create table results (
        handle      text primary key,
        context_id  text not null references oracle_contexts(id) on delete cascade,
        query_id    text not null references queries(id) on delete cascade,
        call_id     text not null,
        text        text not null,
        created_at  text not null
    ) strict;
    create index results_of_a_context on results(context_id);
    ",
);

/// Finds what is in a window, and what that comes to, without reading what was said.
const WINDOWS: Migration = Migration::new(
    3,
    "windows are counted from an index",
    "
    create index exchanges_of_a_window
        on exchanges(context_id, position, rewound_at, query_id, token_count);
    ",
);

const CONVERSATIONS: Migration = Migration::new(
    1,
    "conversations",
    "
    create table oracle_contexts (
        id                    text primary key,
        user_id               text not null,
        project_id            text not null,
        session_start         text not null,
        last_activity         text,
        last_model            text,
        token_budget          integer not null default 16000
                              check (token_budget between 4000 and 128000),
        tokens_used           integer not null default 0 check (tokens_used >= 0),
        compressed_summary    text,
        recent_exchanges_json text not null default '[]',
        key_decisions_json    text not null default '[]',
        mentioned_symbols     text,
        mentioned_files       text,
        status                text not null default 'active'
                              check (status in ('active', 'suspended', 'closed')),
        compression_count     integer not null default 0,
        agent_id              text not null default 'oracle',
        name                  text,
        is_default            integer not null default 0 check (is_default in (0, 1)),
        forked_from           text,
        forked_exchange       text,
        window_from           integer not null default 1,
        last_position         integer not null default 0,
        check (tokens_used * 10 <= token_budget * 11)
    ) strict;
    create unique index one_default_context on oracle_contexts(user_id, project_id)
        where is_default = 1 and status <> 'closed';
    create unique index one_context_of_a_name on oracle_contexts(user_id, project_id, name)
        where name is not null and status <> 'closed';
    create index idx_oracle_contexts_user_project on oracle_contexts(user_id, project_id);
    create index idx_oracle_contexts_last_activity on oracle_contexts(last_activity);

    create table queries (
        id          text primary key,
        context_id  text not null references oracle_contexts(id) on delete cascade,
        question    text not null,
        state       text not null check (state in ('running', 'complete', 'failed', 'cancelled',
                                                   'refused', 'limited', 'interrupted')),
        reason      text,
        started_at  text not null,
        ended_at    text,
        turns       integer not null default 0,
        model       text,
        copied_from text
    ) strict;
    create index queries_of_a_context on queries(context_id, id);
    create unique index one_running_query on queries(context_id) where state = 'running';

    create table exchanges (
        id           text primary key,
        context_id   text not null references oracle_contexts(id) on delete cascade,
        position     integer not null check (position > 0),
        query_id     text not null references queries(id) on delete cascade,
        turn         integer not null,
        role         text not null check (role in ('user', 'assistant', 'tool')),
        tool_call_id text,
        token_count  integer not null check (token_count > 0),
        json         text not null,
        model        text,
        opaque       text,
        rewound_at   text,
        copied_from  text,
        unique (context_id, position),
        check ((role = 'tool') = (tool_call_id is not null))
    ) strict;
    create index exchanges_of_a_query on exchanges(query_id, position);

    create table tool_calls (
        exchange_id  text not null references exchanges(id) on delete cascade,
        call_id      text not null,
        ordinal      integer not null,
        query_id     text not null references queries(id) on delete cascade,
        name         text not null,
        status       text not null check (status in ('pending', 'success', 'error')),
        ending       text check (ending in ('success', 'error', 'timeout', 'denied', 'cancelled',
                                            'interrupted')),
        started_at   text,
        ended_at     text,
        duration_ms  integer,
        result_size  integer,
        plugin_path  text,
        primary key (exchange_id, call_id),
        check ((status = 'pending') = (ending is null))
    ) strict, without rowid;
    create index open_tool_calls on tool_calls(query_id) where status = 'pending';
    create index tool_calls_of_a_query on tool_calls(query_id);

    create table usage (
        id               integer primary key,
        context_id       text not null references oracle_contexts(id) on delete cascade,
        query_id         text not null references queries(id) on delete cascade,
        user_id          text not null,
        project_id       text not null,
        turn             integer not null,
        at               text not null,
        model            text not null,
        path             text not null,
        tool             text,
        input_tokens        integer not null,
        output_tokens       integer not null,
        cached_input_tokens integer not null,
        cache_write_tokens  integer not null,
        reasoning_tokens    integer not null,
        cost_micros         integer
    ) strict;
    create index usage_of_a_project on usage(user_id, project_id, at);
    create index usage_of_a_query on usage(query_id);

    create table key_decisions (
        id          text primary key,
        context_id  text not null references oracle_contexts(id) on delete cascade,
        kind        text not null check (kind in ('decision', 'fact', 'preference')),
        text        text not null,
        created_at  text not null,
        unique (context_id, kind, text)
    ) strict;

    create table mentions (
        context_id    text not null references oracle_contexts(id) on delete cascade,
        kind          text not null check (kind in ('file', 'symbol')),
        text          text not null,
        last_position integer not null,
        primary key (context_id, kind, text)
    ) strict, without rowid;
    create index latest_mentions on mentions(context_id, kind, last_position);
    ",
);
