(jsx_opening_element name: (identifier) @reference)
(jsx_self_closing_element name: (identifier) @reference)
