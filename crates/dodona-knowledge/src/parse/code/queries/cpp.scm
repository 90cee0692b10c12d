; Before the patterns of C, so that a struct is a class here.
(class_specifier
  name: [(type_identifier) @name (template_type name: (type_identifier) @name)]
  body: (_)) @definition.class
(struct_specifier
  name: [(type_identifier) @name (template_type name: (type_identifier) @name)]
  body: (_)) @definition.class
(namespace_definition name: (_) @name) @definition.module
(alias_declaration name: (type_identifier) @name) @definition.type
(concept_definition name: (identifier) @name) @definition.type

; Members, defined or only declared inside of their class.
(function_definition
  declarator: [
    (function_declarator
      declarator: [(field_identifier) (destructor_name) (operator_name)] @name)
    (pointer_declarator
      declarator: (function_declarator declarator: [(field_identifier) (operator_name)] @name))
    (reference_declarator
      (function_declarator declarator: [(identifier) (field_identifier) (operator_name)] @name))
  ]) @definition.function
(field_declaration
  declarator: [
    (function_declarator declarator: [(field_identifier) (operator_name)] @name)
    (pointer_declarator declarator: (function_declarator declarator: (field_identifier) @name))
    (reference_declarator
      (function_declarator declarator: [(field_identifier) (operator_name)] @name))
  ]) @definition.method
(declaration
  declarator: (function_declarator declarator: (destructor_name) @name)) @definition.method

; Members defined elsewhere: the qualifier names the container.
(function_definition
  declarator: [
    (function_declarator
      declarator: (qualified_identifier
        scope: [
          (namespace_identifier) @container
          (template_type name: (type_identifier) @container)
        ]
        name: [(identifier) (destructor_name) (operator_name)] @name))
    (pointer_declarator
      declarator: (function_declarator
        declarator: (qualified_identifier
          scope: [
            (namespace_identifier) @container
            (template_type name: (type_identifier) @container)
          ]
          name: [(identifier) (operator_name)] @name)))
    (reference_declarator
      (function_declarator
        declarator: (qualified_identifier
          scope: [
            (namespace_identifier) @container
            (template_type name: (type_identifier) @container)
          ]
          name: [(identifier) (operator_name)] @name)))
  ]) @definition.method

(template_declaration) @outer

(call_expression function: (qualified_identifier name: (identifier) @reference))
(call_expression function: (template_function name: (identifier) @reference))
(using_declaration (qualified_identifier name: (identifier) @reference))
