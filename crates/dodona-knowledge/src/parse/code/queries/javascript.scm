(field_definition
  property: [(property_identifier) (private_property_identifier)] @name
  value: [(arrow_function) (function_expression)]) @definition.method
(class_heritage (identifier) @reference)
(class_heritage (member_expression property: (property_identifier) @reference))
