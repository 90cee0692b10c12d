; Definitions. A function inside an impl or a trait becomes a method by its container.
(function_item name: (identifier) @name) @definition.function
(function_signature_item name: (identifier) @name) @definition.function
(struct_item name: (type_identifier) @name) @definition.type
(enum_item name: (type_identifier) @name) @definition.type
(union_item name: (type_identifier) @name) @definition.type
(type_item name: (type_identifier) @name) @definition.type
(trait_item name: (type_identifier) @name) @definition.interface
(mod_item name: (identifier) @name body: (_)) @definition.module
(macro_definition name: (identifier) @name) @definition.macro
(const_item name: (identifier) @name) @definition.constant
(static_item name: (identifier) @name) @definition.constant

(impl_item
  type: [
    (type_identifier) @name
    (generic_type type: (type_identifier) @name)
    (scoped_type_identifier name: (type_identifier) @name)
    (generic_type type: (scoped_type_identifier name: (type_identifier) @name))
    (reference_type type: (type_identifier) @name)
  ]) @scope

(line_comment) @doc
(block_comment) @doc
(attribute_item) @doc

; References. A path such as `Type::function` mentions both names.
(call_expression
  function: [
    (identifier) @reference
    (field_expression field: (field_identifier) @reference)
    (generic_function
      function: [
        (identifier) @reference
        (field_expression field: (field_identifier) @reference)
      ])
  ])
(macro_invocation macro: (identifier) @reference)
(scoped_identifier path: (identifier) @reference)
(scoped_identifier name: (identifier) @reference)
(type_identifier) @reference
(use_declaration argument: (identifier) @reference)
(use_list (identifier) @reference)
(use_as_clause path: (identifier) @reference)
(mod_item name: (identifier) @reference !body)
; The arguments of a macro are tokens: a name before parentheses is most likely a call.
(token_tree (identifier) @reference . (token_tree))
