package crdrules

// patterns of the definitions in words, for which the API server has no room in a rule's message.
var patterns = map[string]string{
	`^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$`: "must be a duration with its unit, such as 12.5s or 1m30s",
	`^[A-Za-z_][A-Za-z0-9_]*$`:                      "must be letters, digits and underscores, with no digit first",
	`^[a-z][a-z0-9_-]*$`:                            "must be the kernel's name of a congestion control, such as cubic, reno or bbr",
	`^[^#+\s"]*$`:                                   "must be the beginning of a topic, without #, +, spaces and quotes, such as nor/",
	`^(#|([^#+/\s]*|[+])(/([^#+/\s]*|[+]))*(/#)?)$`: "must be an MQTT topic filter without spaces: # only at the end after a slash, + only as a whole level",
	`^([^#+/\s]+/)*$`:                               "must be levels of a topic, each with a slash after it, such as NOR/, without # and +",
	`^[-._a-zA-Z0-9]+$`:                             "must be letters, digits, dots, hyphens and underscores",
	`^[A-Za-z0-9_-]*$`:                              "must be letters, digits, hyphens and underscores",
	`^[A-Za-z0-9._%/:+-]+$`:                         "must be letters, digits and the signs . _ % / : + -",
	`^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$`: "must be letters, digits, hyphens, dots and underscores, with a letter or digit first and last",
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`: "must be an amount such as 2, 500m or 1Gi",
	`^\S+$`:                            "must be the name of an image, without spaces",
	`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`: "must be the name of an object: lower-case letters, digits, hyphens and dots, with a letter or digit first and last",
	`^[a-z][A-Za-z0-9]*(\[[A-Za-z0-9][A-Za-z0-9._-]*\])*([.][a-z][A-Za-z0-9]*(\[[A-Za-z0-9][A-Za-z0-9._-]*\])*)*$`: "must be the path of a field of the spec, such as duration, networks[wan].link.rate or timeline[0].at",
}

// InWords describes a pattern of the definitions, such as "must be a range such as 2-24"; empty if it has no description.
func InWords(pattern string) string { return patterns[pattern] }
