module example.org/seen

go 1.19
