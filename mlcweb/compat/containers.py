"""TVM's containers are Python's here: `isinstance` of these classes says what programs mean."""

Array = tuple
Map = dict
String = str
ShapeTuple = tuple
