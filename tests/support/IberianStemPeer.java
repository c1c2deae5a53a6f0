import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.core.WhitespaceTokenizer;
import org.apache.lucene.analysis.es.SpanishPluralStemFilter;
import org.apache.lucene.analysis.pt.PortugueseMinimalStemFilter;
import org.apache.lucene.analysis.pt.PortugueseStemFilter;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** Prints what a stemmer of Lucene makes of each word of a file, one a line. */
public final class IberianStemPeer {
    public static void main(String[] arguments) throws IOException {
        try (var reader = new FileReader(arguments[1], StandardCharsets.UTF_8);
                var words = new WhitespaceTokenizer();
                var stems = stemmer(arguments[0], words);
                var out = new PrintStream(System.out, false, StandardCharsets.UTF_8)) {
            words.setReader(reader);
            var term = stems.addAttribute(CharTermAttribute.class);
            stems.reset();
            while (stems.incrementToken()) {
                out.println(term);
            }
            stems.end();
        }
    }

    private static TokenStream stemmer(String name, TokenStream words) {
        return switch (name) {
            case "portuguese_rslp" -> new PortugueseStemFilter(words);
            case "minimal_portuguese" -> new PortugueseMinimalStemFilter(words);
            case "spanish_plural" -> new SpanishPluralStemFilter(words);
            default -> throw new IllegalArgumentException(name);
        };
    }
}
