package v1alpha1

import (
	"time"

	"vignette.dev/vignette/operators/api/units"
)

// Duration is a length of time with its unit (us, ms, s, m or h), such as 100ms, 21m or 1h30m.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$')",message="must be a duration with its unit, not negative, such as 100ms, 21m or 1h30m"
type Duration string

// Std converts to time.Duration; a value that the API server admitted always converts.
func (d Duration) Std() time.Duration { v, _ := time.ParseDuration(string(d)); return v }

// Offset is a length of time with its unit, such as 30s, or -5m for earlier.
//
// +kubebuilder:validation:MaxLength=33
// +kubebuilder:validation:XValidation:rule="self.matches('^-?([0-9]{1,9}([.][0-9]{1,9})?(us|ms|s)|[0-9]{1,5}([.][0-9]{1,9})?(m|h))+$')",message="must be a duration with its unit, such as 30s, or -5m for earlier"
type Offset string

// Std converts to time.Duration; a value that the API server admitted always converts.
func (o Offset) Std() time.Duration { v, _ := time.ParseDuration(string(o)); return v }

// Speed is a speed with its unit: m/s, km/h or kn, such as 1.4m/s or 50km/h.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,5}([.][0-9]{1,6})?(m/s|km/h|kn)$') && self.matches('[1-9]')",message="must be a speed above zero with its unit, such as 1.4m/s, 50km/h or 12kn"
type Speed string

// MetresPerSecond converts to m/s; a value that the API server admitted always converts.
func (s Speed) MetresPerSecond() float64 { v, _ := units.ParseSpeed(string(s)); return v }

// DataRate is a data rate with its unit in bits per second: bit, kbit, Mbit or Gbit, such as 9.8kbit.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,12}([.][0-9]{1,9})?(bit|kbit|Mbit|Gbit)$') && self.matches('[1-9]')",message="must be a rate above zero with its unit, such as 9.8kbit, 250kbit or 2Mbit"
type DataRate string

// BitsPerSecond converts to bits per second; a value that the API server admitted always converts.
func (r DataRate) BitsPerSecond() float64 { v, _ := units.ParseDataRate(string(r)); return v }

// Percent is a share with its unit, such as 1% or 0.5%.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule=`self.matches(r'^(100([.]0+)?|\d\d?([.]\d+)?)%$')`,message="must be a percentage from 0% to 100%, such as 1% or 0.5%"
type Percent string

// Fraction converts to a fraction from 0 to 1; a value that the API server admitted always converts.
func (p Percent) Fraction() float64 { v, _ := units.ParsePercent(string(p)); return v }

// Frequency is a frequency or bandwidth with its unit, such as 300MHz or 250kHz.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,12}([.][0-9]{1,9})?(Hz|kHz|MHz|GHz)$') && self.matches('[1-9]')",message="must be a frequency above zero with its unit, such as 300MHz or 250kHz"
type Frequency string

// Hertz converts to Hz; a value that the API server admitted always converts.
func (f Frequency) Hertz() float64 { v, _ := units.ParseFrequency(string(f)); return v }

// Power is a transmit power with its unit, such as 37dBm, 5W or 100mW.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^(-?[0-9]{1,3}([.][0-9]{1,6})?dBm|[0-9]{1,6}([.][0-9]{1,6})?(mW|W|kW))$') && self.matches('[1-9]|dBm')",message="must be a power above 0W with its unit, such as 37dBm or 5W"
type Power string

// DBm converts to dBm; a value that the API server admitted always converts.
func (p Power) DBm() float64 { v, _ := units.ParsePower(string(p)); return v }

// Gain of an antenna with its unit, such as 2dBi.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,3}([.][0-9]{1,6})?dBi$')",message="must be a gain with its unit, such as 2dBi"
type Gain string

// DBi converts to dBi; a value that the API server admitted always converts.
func (g Gain) DBi() float64 { v, _ := units.ParseGain(string(g)); return v }

// Decibel is a ratio with its unit, such as 4dB.
//
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,3}([.][0-9]{1,6})?dB$')",message="must be a ratio with its unit, such as 4dB"
type Decibel string

// DB converts to dB; a value that the API server admitted always converts.
func (d Decibel) DB() float64 { v, _ := units.ParseDecibel(string(d)); return v }

// Degrees of latitude or longitude, such as 58.19.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,3}([.][0-9]{1,12})?$')",message="must be degrees in quotes, such as '58.19'"
type Degrees string

// Float converts to degrees; a value that the API server admitted always converts.
func (d Degrees) Float() float64 { v, _ := units.ParseDegrees(string(d)); return v }

// Metres is a height or distance with its unit, such as 120m or 1.5km.
//
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:XValidation:rule="self.matches('^-?[0-9]{1,9}([.][0-9]{1,6})?(m|km)$')",message="must be a length with its unit, such as 120m or 1.5km"
type Metres string

// Float converts to metres; a value that the API server admitted always converts.
func (m Metres) Float() float64 { v, _ := units.ParseMetres(string(m)); return v }
