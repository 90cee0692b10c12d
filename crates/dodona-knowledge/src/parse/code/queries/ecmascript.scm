; What JavaScript and TypeScript share. Earlier patterns win where two name the same thing, so
; that a constant that holds a function is a function.
(function_declaration name: (identifier) @name) @definition.function
(generator_function_declaration name: (identifier) @name) @definition.function
(method_definition
  name: [(property_identifier) (private_property_identifier)] @name) @definition.method
(class_declaration name: (_) @name) @definition.class
(variable_declarator
  name: (identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(variable_declarator name: (identifier) @name value: (class)) @definition.class
(assignment_expression
  left: (member_expression property: (property_identifier) @name)
  right: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(pair
  key: (property_identifier) @name
  value: [(arrow_function) (function_expression) (generator_function)]) @definition.function
(program
  [
    (lexical_declaration (variable_declarator name: (identifier) @name))
    (variable_declaration (variable_declarator name: (identifier) @name))
    (export_statement
      declaration: (lexical_declaration (variable_declarator name: (identifier) @name)))
  ] @definition.constant)

(comment) @doc
(decorator) @doc

(call_expression
  function: [
    (identifier) @reference
    (member_expression property: (property_identifier) @reference)
  ])
(new_expression
  constructor: [
    (identifier) @reference
    (member_expression property: (property_identifier) @reference)
  ])
(decorator (identifier) @reference)
(import_clause (identifier) @reference)
(import_specifier name: (identifier) @reference)
(namespace_import (identifier) @reference)
(export_specifier name: (identifier) @reference)
