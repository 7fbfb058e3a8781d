package crdrules

// patterns of the API types in words. No pattern reaches the definitions: the API server would answer with it.
var patterns = map[string]string{
	`^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$`: "must be a duration with its unit, such as 12.5s or 1m30s",
	`^[A-Za-z_][A-Za-z0-9_]*$`:                      "must be letters, digits and underscores, with no digit first",
	`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`:               "must be lower-case letters, digits and hyphens, with a letter or digit first and last, such as bulk",
	`^[a-z][a-z0-9_-]*$`:                            "must be the kernel's name of a congestion control, such as cubic, reno or bbr",
	`^[^#+\s"]*$`:                                   "must be the beginning of a topic, without #, +, spaces and quotes, such as nor/",
	`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`: "must be an MQTT topic filter without spaces: # only at the end after a slash, + only as a whole level",
	`^([^#+/\s]+/)*$`:                               "must be levels of a topic, each with a slash after it, such as NOR/, without # and +",
	`^[-._a-zA-Z0-9]+$`:                             "must be letters, digits, dots, hyphens and underscores",
	`^[A-Za-z0-9_-]*$`:                              "must be letters, digits, hyphens and underscores",
	`^[A-Za-z0-9._%/:+-]+$`:                         "must be letters, digits and the signs . _ % / : + -",
	`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`: "must be letters, digits, hyphens, dots and underscores, with a letter or digit first and last",
	`^/[!-~]*$`:                                     "must be a slash and what follows it in a URL, without spaces, such as /api/tracks",
	`^\S+$`:                                         "must be the name of an image, without spaces",
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`:              "must be the name of an object: lower-case letters, digits, hyphens and dots, with a letter or digit first and last",
	`^[a-z][][\w.-]*$`:                              "must be the path of a field of the spec, such as duration, networks[wan].link.rate or timeline[0].at",
}

// parted are patterns as several rules of a definition, as the API server would take a rule of the whole pattern for too costly.
var parted = map[string][]string{
	`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`: {`!self.matches(r'#.|\+[^/]|[^/][#+]')`, `!self.matches(r'\s')`},
}
