"""Matches of messages: subject patterns, filters, conditions, and their index.

    documents     a message as the document that its conditions read, decoded lazily
    leaves        the scalar values of a document, by path, and the tree of the paths to extract
    subjects      dotted subjects, their patterns, and a trie of patterns
    terms         operators of the filter grammar (Amazon EventBridge's), parsed and compiled
    ranges        numeric ranges: their grammar, and an index of many
    patterns      filters: parsed with exact reasons, and multiplied out to conjunctions
    conjunctions  conditions of which all must hold, on the same elements of shared arrays
    conditions    SQL conditions; `sql` is their compiler
    matches       the match of a route: parsed, compiled, explained
    match_index   the routes that match a message, without asking each
    translation   conditions of other systems as matches; `translators` has one for each

Which messages match depends on the message and the definition alone: no clock, no state (T16).
"""
