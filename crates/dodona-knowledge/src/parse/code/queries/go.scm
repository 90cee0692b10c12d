(function_declaration name: (identifier) @name) @definition.function
; A method stands outside of its type: the receiver names the container.
(method_declaration
  receiver: (parameter_list
    (parameter_declaration
      type: [
        (type_identifier) @container
        (pointer_type (type_identifier) @container)
        (generic_type type: (type_identifier) @container)
        (pointer_type (generic_type type: (type_identifier) @container))
      ]))
  name: (field_identifier) @name) @definition.method
(type_spec name: (type_identifier) @name type: (interface_type)) @definition.interface
(type_spec name: (type_identifier) @name) @definition.type
(type_alias name: (type_identifier) @name) @definition.type
(method_elem name: (field_identifier) @name) @definition.method
(source_file (const_declaration (const_spec name: (identifier) @name) @definition.constant))
(source_file (var_declaration (var_spec name: (identifier) @name) @definition.constant))
(source_file
  (var_declaration (var_spec_list (var_spec name: (identifier) @name) @definition.constant)))

(comment) @doc

(call_expression
  function: [
    (identifier) @reference
    (selector_expression field: (field_identifier) @reference)
  ])
(type_identifier) @reference
(import_spec path: (interpreted_string_literal (interpreted_string_literal_content) @reference))
