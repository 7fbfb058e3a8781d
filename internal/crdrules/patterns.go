package crdrules

// patterns of the definitions in words.
var patterns = map[string]string{
	`^[a-z]([a-z0-9-]*[a-z0-9])?$`:         "must be lower-case letters, digits and hyphens, with a letter first and no hyphen last",
	`^[0-9]{1,6}-[0-9]{1,6}$`:              "must be a range such as 2-24",
	`^-?[0-9]{1,3}([.][0-9]{1,12})?$`:      "must be degrees in quotes, such as '58.19'",
	`^-?[0-9]{1,9}([.][0-9]{1,6})?(m|km)$`: "must be a length with its unit, such as 120m or 1.5km",
	`^sha256:[0-9a-f]{64}$`:                "must be sha256: and 64 hexadecimal digits, as vignette scenario push prints them",
	`^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$`: "must be a duration with its unit, such as 12.5s or 1m30s",
	`^[A-Za-z_][A-Za-z0-9_]*$`:                      "must be letters, digits and underscores, with no digit first",
	`^[a-z][a-z0-9_-]*$`:                            "must be the kernel's name of a congestion control, such as cubic, reno or bbr",
	`^[^#+\s"]*$`:                                   "must be the beginning of a topic, without #, +, spaces and quotes, such as nor/",
	`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`: "must be an MQTT topic filter without spaces: # only at the end after a slash, + only as a whole level",
}

// InWords says what a pattern of the definitions asks for, such as "must be a range such as 2-24"; nothing where it has no words.
func InWords(pattern string) string { return patterns[pattern] }
