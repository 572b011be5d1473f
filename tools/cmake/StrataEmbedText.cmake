# cmake -DINPUT=<text file> -DOUTPUT=<C++ file> -DNAME=<constant> -P …
#
# Writes a source that defines `const char* const strata::<NAME>`, the text.

file(READ ${INPUT} text)
file(WRITE ${OUTPUT}
     "namespace strata {\n\nextern const char* const ${NAME};\nconst char* const ${NAME} = R\"text(${text})text\";\n\n}  // namespace strata\n")
