module pleach.invalid/clients/tools

go 1.26.8

require github.com/mongodb/mongo-tools v0.0.0-20221102190735-6d9d341edd33
