module millstream

go 1.23
