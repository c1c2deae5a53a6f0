import java.io.*;
import java.nio.charset.StandardCharsets;
import org.apache.lucene.analysis.core.WhitespaceTokenizer;
import org.apache.lucene.analysis.en.KStemFilter;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;

/** Prints what Lucene's KStemFilter makes of each word of a file, one a line. */
public final class KStemPeer {
    public static void main(String[] arguments) throws IOException {
        try (var reader = new FileReader(arguments[0], StandardCharsets.UTF_8);
                var words = new WhitespaceTokenizer();
                var stems = new KStemFilter(words);
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
}
