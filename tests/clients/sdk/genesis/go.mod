// Keeps this folder out of the module around it; VERSION.mod is used to build a version.
module noderpc.test/simgenesis

go 1.23.2
