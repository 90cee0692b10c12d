(function_definition name: (identifier) @name) @definition.function
(class_definition name: (identifier) @name) @definition.class
(module (expression_statement (assignment left: (identifier) @name)) @definition.constant)
(type_alias_statement left: (type (identifier) @name)) @definition.type

(comment) @doc
(decorator) @doc

(call
  function: [
    (identifier) @reference
    (attribute attribute: (identifier) @reference)
  ])
(decorator
  [
    (identifier) @reference
    (attribute attribute: (identifier) @reference)
  ])
(class_definition
  superclasses: (argument_list
    [
      (identifier) @reference
      (attribute attribute: (identifier) @reference)
    ]))
(type (identifier) @reference)
(type (attribute attribute: (identifier) @reference))
(type (subscript value: (identifier) @reference))
(generic_type (identifier) @reference)
(except_clause value: (identifier) @reference)
(import_statement name: (dotted_name (identifier) @reference))
(import_from_statement name: (dotted_name (identifier) @reference))
(aliased_import name: (dotted_name (identifier) @reference))
