(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.type
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(compact_constructor_declaration name: (identifier) @name) @definition.method
(field_declaration
  (modifiers "final")
  declarator: (variable_declarator name: (identifier) @name)) @definition.constant

(line_comment) @doc
(block_comment) @doc

(method_invocation name: (identifier) @reference)
(method_reference (identifier) @reference)
(type_identifier) @reference
(marker_annotation name: (identifier) @reference)
(annotation name: (identifier) @reference)
(import_declaration (scoped_identifier name: (identifier) @reference))
