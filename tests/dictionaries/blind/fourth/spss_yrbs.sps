* This SPSS syntax file reads ASCII format (text format) 2017 SADC data and creates a formatted 
and labeled SPSS data file that you can analyze in SPSS.
 
* Change the file location specifications from 'c:\sadc2017' to the location where you 
downloaded, unzipped, and stored the 2017 SADC ASCII data file before you run this syntax; 
Change the location specification in three places - in the 'data list' statement at the top 
of the syntax and in the 'save' and 'get' statements at the end of this syntax file.

* Change 'xxxxxxx' in the 'data list' statement and the 'save' and 'get' statements at the 
end of this syntax file to 'national', 'district', 'state_a_m', or 'state_n_z' depending on which 
file you are analyzing.   

DATA LIST FILE="C:\sadc2017\sadc_2017_xxxxxxx.dat"/
sitecode 1-5 (A) sitename 6-55 (A) sitetype 56-105 (A) sitetypenum 106-113
year 114-121 survyear 122-124 weight 125-134 stratum 135-142
PSU 143-150 record 151-158 age 159-161 sex 162-164 grade 165-167
race4 168-170 race7 171-173 stheight 174-181 stweight 182-189
bmi 190-197 bmipct 198-205 qnobese 206-208 qnowt 209-211 
q67 212-212 q66 213-213 sexid 214-221 sexid2 222-229 sexpart 230-237 sexpart2 238-245.
EXECUTE.
 
VARIABLE LABELS
sitecode "Site code"
sitename "Site name"
sitetype "Site type"
sitetypenum "1=District, 2=State, 3=National"
year "4-digit Year of survey"
survyear "1=1991...14=2017"
weight "Analysis weight"
stratum "Analysis stratum"
PSU "Analysis primary sampling unit"
record "Record ID"
age "1= <=12...7=18+ years old"
sex "1=Female, 2=Male"
grade "1=9th...4=12th grade"
race4 "4-level race variable"
race7 "7-level race variable"
stheight "Height in meters"
stweight "Weight in kilograms"
bmi "Body Mass Index"
bmipct "BMI percentile"
qnobese "Had obesity"
qnowt "Were overweight"
q67 "Sexual identity"
q66 "Sex of sexual contacts"
sexid "Sexual identity"
sexid2 "Collapsed sexual identity"
sexpart "Sex of sex contact(s)"
sexpart2 "Collapsed sex of sex contact(s)".
 
VALUE LABELS
Q66
1 "Never had sexual contact"
2 "Females"
3 "Males"
4 "Females and males"
/
Q67
1 "Heterosexual (straight)"
2 "Gay or lesbian"
3 "Bisexual"
4 "Not sure"
/
sitecode
'AK' 'Alaska'
'AL' 'Alabama'
'AR' 'Arkansas'
'AZB' 'Arizona'
'CA' 'California'
'CO' 'Colorado'
'CT' 'Connecticut'
'DE' 'Delaware'
'FL' 'Florida'
'HI' 'Hawaii'
'IA' 'Iowa'
'ID' 'Idaho'
'IL' 'Illinois'
'KS' 'Kansas'
'KY' 'Kentucky'
'LA' 'Louisiana'
'MD' 'Maryland'
'ME' 'Maine'
'MI' 'Michigan'
'MO' 'Missouri'
'MS' 'Mississippi'
'MT' 'Montana'
'NC' 'North Carolina'
'ND' 'North Dakota'
'NE' 'Nebraska'
'NH' 'New Hampshire'
'NJ' 'New Jersey'
'NM' 'New Mexico'
'NV' 'Nevada'
'NY' 'New York'
'OK' 'Oklahoma'
'PA' 'Pennsylvania'
'RI' 'Rhode Island'
'SC' 'South Carolina'
'SD' 'South Dakota'
'TN' 'Tennessee'
'UT' 'Utah'
'VA' 'Virginia'
'WI' 'Wisconsin'
'WV' 'West Virginia'
'WY' 'Wyoming'
'XX' 'United States'
'NYG' 'Borough of Bronx, NY'
'NYH' 'Borough of Brooklyn, NY'
'NYI' 'Borough of Manhattan, NY'
'NYJ' 'Borough of Queens, NY'
'NYK' 'Borough of Staten Island, NY'
'FT' 'Broward County, FL'
'CM' 'Charlotte-Mecklenburg County, NC'
'CH' 'Chicago, IL'
'DA' 'Dallas, TX'
'DU' 'Duval County, FL'
'FW' 'Fort Worth, TX'
'MM' 'Miami-Dade County, FL'
'ML' 'Milwaukee, WI'
'NO' 'New Orleans, LA'
'NYC' 'New York City, NY'
'OL' 'Orange County, FL'
'SB' 'San Bernardino, CA'
'SA' 'San Diego, CA'
'SE' 'Seattle, WA'
/
age 
1 "12 years old or younger"
2 "13 years old"
3 "14 years old"
4 "15 years old"
5 "16 years old"
6 "17 years old"
7 "18 years old or older"
/
sex 
1 "Female"
2 "Male"
/
grade
1 "9th"
2 "10th"
3 "11th"
4 "12th"
/
race4
1 "White"
2 "Black or African American"
3 "Hispanic/Latino"
4 "All other races"
/
race7
1 "Am Indian / Alaska Native"
2 "Asian"
3 "Black or African American"
4 "Hispanic/Latino"
5 "Native Hawaiian/other PI"
6 "White"
7 "Multiple - Non-Hispanic"
/
sexid 		
1 "Heterosexual"
2 "Gay or Lesbian"
3 "Bisexual"
4 "Not Sure"
/
sexid2		
1 "Heterosexual"
2 "Sexual Minority"
3 "Unsure"
/
sexpart     
1 "Never had sex"
2 "Opposite sex only"
3 "Same sex only"
4 "Both Sexes"
/
sexpart2    
1 "Never had sex"
2 "Opposite sex only"
3 "Same sex only or both sexes"
/.

MISSING VALUES
sitecode ("     ") sitetypenum ("        ")
year ("        ") survyear ("   ") weight ("          ") stratum ("        ")
PSU ("        ") record ("        ") age ("   ") sex ("   ") grade ("   ")
race4 ("   ") race7 ("   ") stheight ("        ") stweight ("        ")
bmi ("        ") bmipct ("        ") qnobese ("   ") qnowt ("   ")
q67 (" ") q66 (" ") sexid ("        ") sexid2 ("        ")
sexpart ("        ") sexpart2 ("        ").

Formats stheight stweight (F5.2).
EXECUTE.
SAVE OUTFILE "C:\sadc2017\sadc2017_xxxxxxx.sav"/
/COMPRESSED.
EXECUTE.

GET FILE="C:\sadc2017\sadc2017_xxxxxxx.sav"/.
