# cmake -DINPUT=<text file> -DOUTPUT=<C++ file> -DNAMESPACE=<name>
#   -DNAME=<constant> -P …
#
# Writes a source that defines `const char* const <NAMESPACE>::<NAME>`, the text.

file(READ ${INPUT} text)
file(WRITE ${OUTPUT}
     "namespace ${NAMESPACE} {\n\nextern const char* const ${NAME};\nconst char* const ${NAME} = R\"text(${text})text\";\n\n}  // namespace ${NAMESPACE}\n")
